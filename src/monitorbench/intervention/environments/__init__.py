"""Tasks for agents: text games and questions with tools, behind one protocol."""
