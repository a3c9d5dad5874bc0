"""The command `monitorbench`: its stages, a project of one's own, the shell's completion."""
