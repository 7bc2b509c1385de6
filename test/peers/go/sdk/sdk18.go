//go:build !sdk10

// What is written differently since 1.8: questions are input requests, which the SDK turns into requests for legacy hosts.
package main

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func refusal() error {
	return &jsonrpc.Error{Code: -31999, Message: "refused", Data: json.RawMessage(`{"why":"because","n":[1,2]}`)}
}

func capable(options *mcp.ClientOptions) {
	options.Capabilities = &mcp.ClientCapabilities{
		RootsV2:     &mcp.RootCapabilities{ListChanged: true},
		Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
	}
}

func narrowServer(options *mcp.ServerOptions) {
	if *revision != "" {
		options.SupportedProtocolVersions = []string{*revision}
	}
}

// Over HTTP the SDK serves 2026-07-28 where it keeps no sessions only.
func streamable() *mcp.StreamableHTTPOptions {
	return &mcp.StreamableHTTPOptions{Stateless: *revision >= "2026"}
}

func hostSession() *mcp.ClientSessionOptions { return &mcp.ClientSessionOptions{ProtocolVersion: *revision} }

func elicited(params *mcp.ElicitParams) *mcp.ElicitResult {
	if params.Mode == "url" {
		return &mcp.ElicitResult{Action: "accept"}
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "yes"}}
}

func asking(request mcp.InputRequest) func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer, ok := req.Params.InputResponses["question"]; ok {
			return answered(answer, nil)
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"question": request}}, nil
	}
}

var questions = map[string]func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error){
	"ask_form": asking(&mcp.ElicitParams{Mode: "form", Message: "Which answer?", RequestedSchema: form}),
	"ask_url":  asking(&mcp.ElicitParams{Mode: "url", Message: "Please visit", URL: "https://peer.example/visit", ElicitationID: "elicitation-1"}),
	"sample":   asking(sampling),
	"roots":    asking(&mcp.ListRootsParams{}),
}
