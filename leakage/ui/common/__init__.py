"""Code that several pages share: settings as widgets, addresses, Markdown, the visitor's session."""
