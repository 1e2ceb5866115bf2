"""What each chapter claims of the records it shows, as conditions that its last cell asserts; a file per chapter."""
