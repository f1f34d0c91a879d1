/* MAVLink includes it, and uses nothing of it. */
