/**
 * A promise that is settled from outside: `Promise.withResolvers` of ES2024, which Node 20 lacks.
 */
export interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}

export function deferred<T = void>(): Deferred<T> {
  let settle: Pick<Deferred<T>, 'resolve' | 'reject'> | undefined
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject }
  })
  // The executor runs before the constructor returns.
  return { promise, ...(settle as NonNullable<typeof settle>) }
}

/**
 * A promise that never resolves, for Promise.race. It rejects when a background task fails. A
 * rejection before anything awaits the promise does not count as unhandled.
 */
export function deferredFailure(): Pick<Deferred<never>, 'promise' | 'reject'> {
  const failure = deferred<never>()
  failure.promise.catch(() => {})
  return failure
}
