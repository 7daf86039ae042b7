"""Tools: the function that a request asks for, with arguments out of the request, in few passes."""
