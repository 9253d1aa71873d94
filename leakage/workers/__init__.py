"""The processes beside the web server: the dispatcher, and the workers that attack, train and measure."""
