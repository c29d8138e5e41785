"""What every package uses: array types, limits on sizes, files, texts, and code that users name."""
