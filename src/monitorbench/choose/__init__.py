"""The main job in one: which of some monitors to deploy, at which threshold."""
