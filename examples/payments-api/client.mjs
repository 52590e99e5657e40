// Pays an order: node client.mjs URL ORDER AMOUNT
import { sendOnce } from "./idempotency.mjs";

const [url, order, amount] = process.argv.slice(2);
const response = await sendOnce(url, {
  method: "POST",
  headers: { Authorization: "Bearer shop-7", "Content-Type": "application/json" },
  body: JSON.stringify({ order, amount }),
});
const replayed = response.headers.get("Idempotency-Replayed") === "true" ? ", replayed" : "";
console.log(`${response.status} ${await response.text()}${replayed}`);
