// A server and a host on mcp-go: `mcpgo server stdio | sse PORT | http PORT`, `mcpgo host`.
package main

import "os"

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
