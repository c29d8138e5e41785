"""What a log supports: averages of the policy that wrote it, a better one, and what data would settle."""
