"""What pages and routes share of what a browser gets: JavaScript modules and HTML templates."""
