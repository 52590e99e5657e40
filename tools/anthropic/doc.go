// Package settleanthropic runs the tool calls of github.com/anthropics/anthropic-sdk-go
// through a [settle.Executor]: of a loop over messages, and of the SDK's tool runner.
//
// A loop over messages stays the host's:
//
//	tools, err := settleanthropic.New(ex)
//	system, err := tools.System(ctx, anthropic.TextBlockParam{Text: "…"})
//	params := anthropic.MessageNewParams{Model: "…", MaxTokens: 1024, System: system, Tools: tools.ForMessages(),
//		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("…"))}}
//	for {
//		message, err := client.Messages.New(ctx, params)
//		params.Messages = append(params.Messages, message.ToParam())
//		results, err := tools.Answer(ctx, *message)
//		if len(results) == 0 {
//			break
//		}
//		params.Messages = append(params.Messages, anthropic.NewUserMessage(results...))
//	}
//
// The tool runner is given the same tools as [Tools.BetaTools]; tools that exist
// as [anthropic.BetaTool] already are decorated with [Guard]:
//
//	runner := client.Beta.Messages.NewToolRunner(tools.BetaTools(), params)
//
// What a call comes to is always the content of its result, in the words of
// [settle.Outcome.ForModel], and not marked as an error; an error is the host's
// mistake, or the control flow of a tool that the host runs itself.
//
// The context names principal and task: [settle.WithPrincipal], [settle.WithTask].
package settleanthropic
