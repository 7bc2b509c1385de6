// A server and a host on the official SDK: `sdk server stdio | sse PORT | http PORT`, `sdk host`. Built for 1.0 with the tag sdk10.
package main

import (
	"os"
)

func main() {
	if os.Args[1] == "host" {
		host()
		return
	}
	port := ""
	if len(os.Args) > 3 {
		port = os.Args[3]
	}
	serve(os.Args[2], port)
}
