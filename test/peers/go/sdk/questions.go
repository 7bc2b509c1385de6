package main

import "github.com/modelcontextprotocol/go-sdk/mcp"

var form = map[string]any{
	"type":       "object",
	"properties": map[string]any{"answer": map[string]any{"type": "string", "title": "Answer"}},
	"required":   []string{"answer"},
}

var sampling = &mcp.CreateMessageParams{
	Messages:     []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "What?"}}},
	MaxTokens:    7,
	SystemPrompt: "Be brief.",
}
