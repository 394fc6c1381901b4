/** Caching of promised results. */

/** Calls `forget` when the promise is rejected: one failed read must not fail every later request. */
export function untilRejected<T>(promise: Promise<T>, forget: () => void): Promise<T> {
  promise.catch(forget)
  return promise
}
