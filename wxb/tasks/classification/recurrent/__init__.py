"""Classes by a recurrent network that reads words both ways."""
