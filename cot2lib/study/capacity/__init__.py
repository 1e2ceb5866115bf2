"""Chapter `capacity`: how many states fit into a thought."""
