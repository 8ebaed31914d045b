/** Maximum turns of the event loop to wait for a short one. */
const TURNS_MAX = 30
const SHORT_TURN_MS = 0.3

/**
 * Resolves after a turn of the event loop with little work. Closing a listening socket resets
 * connections that wait to be accepted. After such a turn there are hardly any.
 */
export async function shortTurn(): Promise<void> {
  for (let turns = 0; turns < TURNS_MAX; turns++) {
    const began = performance.now()
    await new Promise((resolve) => setImmediate(resolve))
    if (turns > 0 && performance.now() - began < SHORT_TURN_MS) return
  }
}
