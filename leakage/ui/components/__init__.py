"""What runs in the browser: a folder each, with Python, HTML, CSS and JavaScript together."""
