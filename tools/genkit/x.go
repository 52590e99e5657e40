package settlegenkit
import (
 _ "github.com/settle-go/settle"
 _ "github.com/settle-go/settle/store/sqlite"
 _ "github.com/settle-go/settle/internal/scripted"
 _ "github.com/settle-go/settle/internal/farside"
 _ "github.com/firebase/genkit/go/ai"
 _ "github.com/firebase/genkit/go/genkit"
 _ "github.com/firebase/genkit/go/plugins/compat_oai/openai"
 _ "go.opentelemetry.io/otel/sdk/trace/tracetest"
)
