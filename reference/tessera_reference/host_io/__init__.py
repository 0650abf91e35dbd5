"""The Host - IO_CPU document: messages between host and IO_CPU, and an endpoint that answers them."""
