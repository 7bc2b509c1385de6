package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"peers/wire"
)

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

type echoed struct {
	Text  string `json:"text" jsonschema:"what is said"`
	Times int    `json:"times,omitempty"`
}

type counting struct {
	N int `json:"n"`
}

type counted struct {
	N    int   `json:"n"`
	List []int `json:"list"`
}

func text(said string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}
}

func decoded(text string) []byte {
	data, _ := base64.StdEncoding.DecodeString(text)
	return data
}

var cancelledKeys sync.Map

type arguments struct {
	Steps  int    `json:"steps"`
	Key    string `json:"key"`
	Ms     int    `json:"ms"`
	Remove bool   `json:"remove"`
}

type run func(ctx context.Context, req *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error)

func newServer() *mcp.Server {
	options := &mcp.ServerOptions{
		Instructions: "A peer written in Go.",
		PageSize:     7,
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			found := []string{}
			for _, one := range []string{"alice", "albert", "bob"} {
				if strings.HasPrefix(one, req.Params.Argument.Value) {
					found = append(found, one)
				}
			}
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: found, Total: len(found)}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		KeepAlive:          *keepAlive,
	}
	narrowServer(options)
	server := mcp.NewServer(&mcp.Implementation{Name: "go-peer", Title: "Go peer", Version: "1.0.0"}, options)
	if *journal != "" {
		server.AddSendingMiddleware(noted)
	}

	mcp.AddTool(server, &mcp.Tool{
		Name:        "echo",
		Title:       "Echo",
		Description: "Says it again.",
		Annotations: &mcp.ToolAnnotations{Title: "Says it again", ReadOnlyHint: true},
		Meta:        mcp.Meta{"peer.example/kind": "echo"},
	}, func(_ context.Context, _ *mcp.CallToolRequest, in echoed) (*mcp.CallToolResult, any, error) {
		return text(strings.TrimSpace(strings.Repeat(in.Text+" ", max(in.Times, 1)))), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "structured", Description: "Structured content."},
		func(_ context.Context, _ *mcp.CallToolRequest, in counting) (*mcp.CallToolResult, counted, error) {
			out := counted{N: in.N, List: []int{}}
			for n := range in.N {
				out.List = append(out.List, n)
			}
			return nil, out, nil
		})

	add := func(name, description, properties string, handle run) {
		schema := json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%s}}`, properties))
		server.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: schema},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var args arguments
				_ = json.Unmarshal(req.Params.Arguments, &args)
				return handle(ctx, req, args)
			})
	}
	add("blocks", "One block of each type.", "", func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Meta: mcp.Meta{"peer.example/blocks": 6}, Content: []mcp.Content{
			&mcp.TextContent{Text: "plain ünïcode \u2028 text", Annotations: &mcp.Annotations{Audience: []mcp.Role{"user"}, Priority: 0.5}},
			&mcp.ImageContent{Data: decoded(png), MIMEType: "image/png"},
			&mcp.AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"},
			&mcp.ResourceLink{URI: "peer://text", Name: "text", MIMEType: "text/plain", Description: "A link"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "peer://text", MIMEType: "text/plain", Text: "embedded"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "peer://blob", MIMEType: "application/octet-stream", Blob: []byte{0, 1, 2}}},
		}}, nil
	})
	add("fail", "Fails as tools fail.", "", func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) {
		failed := text("it failed")
		failed.IsError = true
		return failed, nil
	})
	add("refuse", "Answers with a JSON-RPC error.", "", func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) {
		return nil, refusal()
	})
	add("progress", "Reports progress.", `"steps":{"type":"integer"}`, func(ctx context.Context, req *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
		for step := 1; step <= args.Steps; step++ {
			report(ctx, req, float64(step), float64(args.Steps), fmt.Sprintf("step %d", step))
			time.Sleep(50 * time.Millisecond)
		}
		return text("reported"), nil
	})
	add("log", "Sends log messages.", "", func(ctx context.Context, req *mcp.CallToolRequest, _ arguments) (*mcp.CallToolResult, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "info", "warning", "error"} {
			_ = req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "peer", Data: map[string]string{"text": "at " + string(level)}})
		}
		return text("logged"), nil
	})
	add("wait", "Waits until it is cancelled.", `"key":{"type":"string"}`, func(ctx context.Context, req *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
		report(ctx, req, 1, 0, "waiting")
		select {
		case <-ctx.Done():
			cancelledKeys.Store(args.Key, true)
			return nil, ctx.Err()
		case <-time.After(30 * time.Second):
			return text("waited"), nil
		}
	})
	add("cancelled", "Tells whether the call with this key was cancelled.", `"key":{"type":"string"}`, func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
		for range 10 {
			if _, ok := cancelledKeys.Load(args.Key); ok {
				return text("cancelled"), nil
			}
			time.Sleep(50 * time.Millisecond)
		}
		return text("not cancelled"), nil
	})
	add("session", "Names this session.", "", func(_ context.Context, req *mcp.CallToolRequest, _ arguments) (*mcp.CallToolResult, error) {
		return text(fmt.Sprintf("%d %s", os.Getpid(), req.Session.ID())), nil
	})
	add("slow", "Takes its time.", `"ms":{"type":"integer"}`, func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
		time.Sleep(time.Duration(args.Ms) * time.Millisecond)
		return text("done"), nil
	})
	add("grow", "Adds a tool, or removes it.", `"remove":{"type":"boolean"}`, func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
		if args.Remove {
			server.RemoveTools("extra")
		} else {
			add("extra", "Only sometimes there.", "", func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) {
				return text("extra"), nil
			})
		}
		return text("grown"), nil
	})
	add("touch", "Updates peer://watched.", "", func(ctx context.Context, _ *mcp.CallToolRequest, _ arguments) (*mcp.CallToolResult, error) {
		return text("touched"), server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "peer://watched"})
	})
	for name, question := range questions {
		add(name, "Asks the host.", "", func(ctx context.Context, req *mcp.CallToolRequest, _ arguments) (*mcp.CallToolResult, error) {
			return question(ctx, req)
		})
	}

	read := func(contents *mcp.ResourceContents) mcp.ResourceHandler {
		return func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
		}
	}
	server.AddResource(&mcp.Resource{URI: "peer://text", Name: "text", Title: "Text", Description: "A text", MIMEType: "text/plain"},
		read(&mcp.ResourceContents{URI: "peer://text", MIMEType: "text/plain", Text: "the text\r\n\tünïcode"}))
	server.AddResource(&mcp.Resource{URI: "peer://blob", Name: "blob", MIMEType: "application/octet-stream", Size: 5},
		read(&mcp.ResourceContents{URI: "peer://blob", MIMEType: "application/octet-stream", Blob: []byte{0, 1, 2, 3, 4}}))
	server.AddResource(&mcp.Resource{URI: "peer://watched", Name: "watched", MIMEType: "text/plain"},
		read(&mcp.ResourceContents{URI: "peer://watched", MIMEType: "text/plain", Text: "watched"}))
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "peer://items/{id}", Name: "item", Title: "Item", Description: "One item", MIMEType: "application/json"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			id := strings.TrimPrefix(req.Params.URI, "peer://items/")
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json", Text: fmt.Sprintf(`{"id":%q}`, id)}}}, nil
		})
	server.AddPrompt(&mcp.Prompt{Name: "greet", Title: "Greeting", Description: "Greets.", Arguments: []*mcp.PromptArgument{
		{Name: "name", Description: "Whom", Required: true}, {Name: "style"},
	}}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		said := fmt.Sprintf("Greet %s in a %s way.", req.Params.Arguments["name"], req.Params.Arguments["style"])
		return &mcp.GetPromptResult{Description: "Greets.", Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: said}}}}, nil
	})
	return server
}

// noted writes a line for each ping that was refused or not answered in time; one that the end of the session cuts off is neither.
func noted(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if method == "ping" && err != nil && (errors.Is(err, context.DeadlineExceeded) || wire.IsRefusal(err)) {
			if file, opened := os.OpenFile(*journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); opened == nil {
				_, _ = fmt.Fprintf(file, "ping: %v\n", err)
				_ = file.Close()
			}
		}
		return result, err
	}
}

func report(ctx context.Context, req *mcp.CallToolRequest, progress, total float64, message string) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: progress, Total: total, Message: message})
}

func answered(result any, err error) (*mcp.CallToolResult, error) {
	if err != nil {
		return nil, err
	}
	said, _ := json.Marshal(result)
	return text(string(said)), nil
}

func serve(transport, port string) {
	server := newServer()
	find := func(*http.Request) *mcp.Server { return server }
	var err error
	switch transport {
	case "stdio":
		err = server.Run(context.Background(), &mcp.StdioTransport{})
	case "sse":
		err = http.ListenAndServe("127.0.0.1:"+port, mcp.NewSSEHandler(find, nil))
	default:
		err = http.ListenAndServe("127.0.0.1:"+port, mcp.NewStreamableHTTPHandler(find, streamable()))
	}
	if err != nil {
		log.Print(err)
	}
}
