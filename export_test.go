package settle

import "time"

// WithDeliveryTimeout is how long a sink has for an event.
func WithDeliveryTimeout(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.delivery = d })
}
