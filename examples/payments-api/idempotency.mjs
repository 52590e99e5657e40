// Sends a request that has an effect, under one key, until its outcome is known.
export async function sendOnce(url, init = {}, options = {}) {
  const { key = crypto.randomUUID(), attempts = 5, timeout = 15_000, longestWait = 30_000 } = options;
  const headers = new Headers(init.headers);
  headers.set("Idempotency-Key", `"${key}"`);
  for (let attempt = 1; ; attempt++) {
    let wait = Math.random() * Math.min(100 * 2 ** attempt, 5_000);
    try {
      const response = await fetch(url, { ...init, headers, signal: withTimeout(init.signal, timeout) });
      const asked = retryAfter(response);
      if (!sendAgain(response, asked) || attempt >= attempts || asked > longestWait) return response;
      wait = Math.max(wait, asked ?? 0);
      await response.body?.cancel();
    } catch (error) {
      if (init.signal?.aborted || attempt >= attempts) throw error; // the outcome is not known: ask, or send again with the key
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

function sendAgain(response, asked) {
  if (["unknown", "manual", "not_recorded"].includes(response.headers.get("Idempotency-Status"))) return false;
  if (response.status === 409) return asked !== undefined; // in flight
  return [408, 425, 429].includes(response.status) || response.status >= 500;
}

function retryAfter(response) {
  const value = response.headers.get("Retry-After");
  if (value === null) return undefined;
  const wait = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(wait) ? undefined : Math.max(wait, 0);
}

function withTimeout(signal, milliseconds) {
  const timeout = new AbortController();
  setTimeout(() => timeout.abort(new DOMException("no answer in time", "TimeoutError")), milliseconds).unref?.();
  signal?.addEventListener("abort", () => timeout.abort(signal.reason), { once: true });
  if (signal?.aborted) timeout.abort(signal.reason);
  return timeout.signal;
}
