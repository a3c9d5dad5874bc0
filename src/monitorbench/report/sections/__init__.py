"""The sections of the report's page, in files by what they show; their order is `report.write.SECTIONS`."""
