// Package settleopenai runs the tool calls of a loop over github.com/openai/openai-go
// through a [settle.Executor], for chat completions and for responses.
//
//	tools, err := settleopenai.New(ex)
//	messages, err := tools.BeginChat(ctx, openai.SystemMessage("…"), openai.UserMessage("…"))
//	params := openai.ChatCompletionNewParams{Model: "…", Messages: messages, Tools: tools.ForChat()}
//	for {
//		completion, err := client.Chat.Completions.New(ctx, params)
//		choice := completion.Choices[0]
//		params.Messages = append(params.Messages, choice.Message.ToParam())
//		results, err := tools.AnswerChat(ctx, choice)
//		if len(results) == 0 {
//			break
//		}
//		params.Messages = append(params.Messages, results...)
//	}
//
// The SDK has no tool runner, so there is no hook: the loop stays the host's, and
// each turn's calls pass through [Tools.AnswerChat] or [Tools.AnswerResponse].
// What a call comes to is always the content of its result, in the words of
// [settle.Outcome.ForModel]; an error is the host's mistake, or the control flow
// of a tool that the host runs itself ([Guarded]).
//
// The context names principal and task: [settle.WithPrincipal], [settle.WithTask].
package settleopenai
