// A server and a host on the official SDK: `sdk [options] server stdio | sse PORT | http PORT`, `sdk [options] host`. Built for 1.0 with
// the tag sdk10.
package main

import "flag"

// Options of the SDK that its users set.
var (
	keepAlive = flag.Duration("keep-alive", 0, "ping the other side at this interval, and end the session when it does not answer")
	revision  = flag.String("revision", "", "speak this one revision")
	journal   = flag.String("journal", "", "a file with a line for each ping of a server that was not answered")
)

func main() {
	flag.Parse()
	if flag.Arg(0) == "host" {
		host()
		return
	}
	serve(flag.Arg(1), flag.Arg(2))
}
