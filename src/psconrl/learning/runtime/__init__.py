"""Running an agent: steps, episodes, events, logs, files, planning in the background."""
