package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

type completions struct{}

func (completions) complete(value string) *mcp.Completion {
	found := []string{}
	for _, one := range []string{"alice", "albert", "bob"} {
		if strings.HasPrefix(one, value) {
			found = append(found, one)
		}
	}
	return &mcp.Completion{Values: found, Total: len(found)}
}

func (c completions) CompletePromptArgument(_ context.Context, _ string, argument mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	return c.complete(argument.Value), nil
}

func (c completions) CompleteResourceArgument(_ context.Context, _ string, argument mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	return c.complete(argument.Value), nil
}

var cancelledKeys sync.Map

type handler = func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error)

func report(ctx context.Context, s *server.MCPServer, req mcp.CallToolRequest, progress float64, total any, message string) {
	if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
		return
	}
	params := map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": progress, "message": message}
	if total != nil {
		params["total"] = total
	}
	_ = s.SendNotificationToClient(ctx, "notifications/progress", params)
}

func asking(build func(*server.InputRequestBuilder) *server.InputRequestBuilder) handler {
	return func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer, ok := server.InputResponse(req.Params.InputResponses, "question"); ok {
			said, err := json.Marshal(answer)
			return mcp.NewToolResultText(string(said)), err
		}
		return build(server.NewInputRequestBuilder("")).ToolResult(), nil
	}
}

func newServer() *server.MCPServer {
	s := server.NewMCPServer("mcp-go-peer", "1.0.0",
		server.WithTitle("mcp-go peer"), server.WithInstructions("A peer written with mcp-go."),
		server.WithToolCapabilities(true), server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true),
		server.WithLogging(), server.WithCompletions(), server.WithElicitation(), server.WithRoots(), server.WithPaginationLimit(7),
		server.WithPromptCompletionProvider(completions{}), server.WithResourceCompletionProvider(completions{}),
	)
	s.EnableSampling()

	s.AddTool(mcp.NewTool("echo", mcp.WithDescription("Says it again."), mcp.WithTitleAnnotation("Says it again"), mcp.WithReadOnlyHintAnnotation(true),
		mcp.WithString("text", mcp.Required()), mcp.WithNumber("times", mcp.Min(1), mcp.Max(3))),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			said, err := req.RequireString("text")
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText(strings.TrimSpace(strings.Repeat(said+" ", req.GetInt("times", 1)))), nil
		})
	type counted struct {
		N    int   `json:"n"`
		List []int `json:"list"`
	}
	s.AddTool(mcp.NewTool("structured", mcp.WithDescription("Structured content."), mcp.WithNumber("n", mcp.Required()), mcp.WithOutputSchema[counted]()),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			out := counted{N: req.GetInt("n", 0), List: []int{}}
			for n := range out.N {
				out.List = append(out.List, n)
			}
			said, _ := json.Marshal(out)
			return mcp.NewToolResultStructured(out, string(said)), nil
		})

	add := func(name, description string, handle handler) {
		s.AddTool(mcp.NewToolWithRawSchema(name, description, json.RawMessage(`{"type":"object","properties":{}}`)), handle)
	}
	add("blocks", "One block of each type.", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		priority := 0.5
		said := mcp.NewTextContent("plain ünïcode \u2028 text")
		said.Annotations = &mcp.Annotations{Audience: []mcp.Role{"user"}, Priority: &priority}
		return &mcp.CallToolResult{Content: []mcp.Content{
			said,
			mcp.NewImageContent(png, "image/png"),
			mcp.NewAudioContent("UklGRg==", "audio/wav"),
			mcp.NewResourceLink("peer://text", "text", "A link", "text/plain"),
			mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: "peer://text", MIMEType: "text/plain", Text: "embedded"}),
			mcp.NewEmbeddedResource(mcp.BlobResourceContents{URI: "peer://blob", MIMEType: "application/octet-stream", Blob: "AAEC"}),
		}}, nil
	})
	add("fail", "Fails as tools fail.", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("it failed"), nil
	})
	add("refuse", "Answers with a JSON-RPC error.", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("refused")
	})
	add("progress", "Reports progress.", func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		steps := req.GetInt("steps", 0)
		for step := 1; step <= steps; step++ {
			report(ctx, s, req, float64(step), steps, fmt.Sprintf("step %d", step))
			time.Sleep(50 * time.Millisecond)
		}
		return mcp.NewToolResultText("reported"), nil
	})
	add("log", "Sends log messages.", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "info", "warning", "error"} {
			_ = s.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(level, "peer", map[string]string{"text": "at " + string(level)}))
		}
		// mcp-go sends notifications beside the answer, and drops what has not been sent when the answer is ready.
		time.Sleep(200 * time.Millisecond)
		return mcp.NewToolResultText("logged"), nil
	})
	add("wait", "Waits until it is cancelled.", func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		report(ctx, s, req, 1, nil, "waiting")
		select {
		case <-ctx.Done():
			cancelledKeys.Store(req.GetString("key", ""), true)
			return nil, ctx.Err()
		case <-time.After(30 * time.Second):
			return mcp.NewToolResultText("waited"), nil
		}
	})
	add("cancelled", "Tells whether the call with this key was cancelled.", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 10 {
			if _, ok := cancelledKeys.Load(req.GetString("key", "")); ok {
				return mcp.NewToolResultText("cancelled"), nil
			}
			time.Sleep(50 * time.Millisecond)
		}
		return mcp.NewToolResultText("not cancelled"), nil
	})
	add("slow", "Takes its time.", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		time.Sleep(time.Duration(req.GetInt("ms", 0)) * time.Millisecond)
		return mcp.NewToolResultText("done"), nil
	})
	add("grow", "Adds a tool, or removes it.", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.GetBool("remove", false) {
			s.DeleteTools("extra")
		} else {
			add("extra", "Only sometimes there.", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("extra"), nil
			})
		}
		return mcp.NewToolResultText("grown"), nil
	})
	add("touch", "Updates peer://watched.", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": "peer://watched"})
		return mcp.NewToolResultText("touched"), nil
	})
	form := map[string]any{"type": "object", "properties": map[string]any{"answer": map[string]any{"type": "string", "title": "Answer"}}, "required": []string{"answer"}}
	add("ask_form", "Asks with a form.", asking(func(b *server.InputRequestBuilder) *server.InputRequestBuilder {
		return b.Elicit("question", mcp.ElicitationParams{Mode: "form", Message: "Which answer?", RequestedSchema: form})
	}))
	add("ask_url", "Asks to visit a page.", asking(func(b *server.InputRequestBuilder) *server.InputRequestBuilder {
		return b.Elicit("question", mcp.ElicitationParams{Mode: "url", Message: "Please visit", URL: "https://peer.example/visit", ElicitationID: "elicitation-1"})
	}))
	add("sample", "Asks the model.", asking(func(b *server.InputRequestBuilder) *server.InputRequestBuilder {
		return b.Sample("question", mcp.CreateMessageParams{Messages: []mcp.SamplingMessage{{Role: "user", Content: mcp.NewTextContent("What?")}}, MaxTokens: 7, SystemPrompt: "Be brief."})
	}))
	add("roots", "Asks for the roots.", asking(func(b *server.InputRequestBuilder) *server.InputRequestBuilder {
		return b.Roots("question")
	}))

	read := func(contents ...mcp.ResourceContents) server.ResourceHandlerFunc {
		return func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) { return contents, nil }
	}
	s.AddResource(mcp.NewResource("peer://text", "text", mcp.WithResourceDescription("A text"), mcp.WithMIMEType("text/plain")),
		read(mcp.TextResourceContents{URI: "peer://text", MIMEType: "text/plain", Text: "the text\r\n\tünïcode"}))
	s.AddResource(mcp.NewResource("peer://blob", "blob", mcp.WithMIMEType("application/octet-stream")),
		read(mcp.BlobResourceContents{URI: "peer://blob", MIMEType: "application/octet-stream", Blob: "AAECAwQ="}))
	s.AddResource(mcp.NewResource("peer://watched", "watched", mcp.WithMIMEType("text/plain")),
		read(mcp.TextResourceContents{URI: "peer://watched", MIMEType: "text/plain", Text: "watched"}))
	s.AddResourceTemplate(mcp.NewResourceTemplate("peer://items/{id}", "item", mcp.WithTemplateDescription("One item"), mcp.WithTemplateMIMEType("application/json")),
		func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			id := strings.TrimPrefix(req.Params.URI, "peer://items/")
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, MIMEType: "application/json", Text: fmt.Sprintf(`{"id":%q}`, id)}}, nil
		})
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithPromptDescription("Greets."), mcp.WithArgument("name", mcp.RequiredArgument()), mcp.WithArgument("style")),
		func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			said := fmt.Sprintf("Greet %s in a %s way.", req.Params.Arguments["name"], req.Params.Arguments["style"])
			return mcp.NewGetPromptResult("Greets.", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(said))}), nil
		})
	return s
}

func serve(transport, port string) {
	s := newServer()
	var err error
	switch transport {
	case "stdio":
		err = server.ServeStdio(s)
	case "sse":
		err = server.NewSSEServer(s).Start("127.0.0.1:" + port)
	default:
		err = server.NewStreamableHTTPServer(s).Start("127.0.0.1:" + port)
	}
	if err != nil {
		log.Print(err)
	}
}
