// An MCP server that reads JSON as Go's encoding/json does: a member is taken for a field whatever its case, and the last one counts
// (T-20). It says what it was made to execute. Only the standard library is needed.
//
// Usage: server legacy|modern, on stdin and stdout.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Arguments struct {
			Org  string `json:"org"`
			Task string `json:"task"`
			Deep struct {
				K string `json:"k"`
			} `json:"deep"`
		} `json:"arguments"`
	} `json:"params"`
}

var era = os.Args[1]

// How many tools were executed.
var calls int

type object = map[string]any

func answer(m message) object {
	switch m.Method {
	case "initialize":
		if era == "legacy" {
			return object{"protocolVersion": "2025-11-25", "capabilities": object{"tools": object{}}, "serverInfo": object{"name": "go", "version": "1"}}
		}
	case "server/discover":
		if era == "modern" {
			return object{"supportedVersions": []string{"2026-07-28"}, "capabilities": object{"tools": object{}}}
		}
	case "ping":
		return object{}
	case "tools/list":
		text := object{"type": "string"}
		schema := object{"type": "object", "properties": object{"org": text, "task": text, "deep": object{"type": "object"}}}
		tools := []object{}
		for _, name := range []string{"read", "delete_all"} {
			tools = append(tools, object{"name": name, "inputSchema": schema})
		}
		return object{"tools": tools}
	case "tools/call":
		a := m.Params.Arguments
		calls++
		text := fmt.Sprintf("call %d: %s org=%s task=%s deep.k=%s", calls, m.Params.Name, a.Org, a.Task, a.Deep.K)
		return object{"content": []object{{"type": "text", "text": text}}}
	}
	return nil
}

// reply returns nil for notifications.
func reply(line []byte) []byte {
	var m message
	if json.Unmarshal(line, &m) != nil || m.ID == nil {
		return nil
	}
	body := object{"jsonrpc": "2.0", "id": m.ID}
	if result := answer(m); result == nil {
		body["error"] = object{"code": -32601, "message": "Method not found"}
	} else {
		if era == "modern" {
			result["resultType"], result["ttlMs"], result["cacheScope"] = "complete", 0, "private"
		}
		body["result"] = result
	}
	text, _ := json.Marshal(body)
	return text
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if text := reply(lines.Bytes()); text != nil {
			fmt.Println(string(text))
		}
	}
}
