"""The settings as a Hydra tree: `pkg://monitorbench.conf`."""
