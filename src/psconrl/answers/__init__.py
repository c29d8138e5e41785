"""Whatever is asked of a plan, of a model or of a system: reasons, rules, trade-offs, windows, prices, inspection."""
