import { MINUTE_MS } from '../engine/kernel/process/clock.ts'
import { logFailure } from '../engine/kernel/process/failure.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import type { SecretsKey } from '../engine/kernel/process/secrets-key.ts'
import { hasSecrets, secretsKeyProblems } from '../engine/store/key-problems.ts'
import type { Store } from '../engine/store/store.ts'

/**
 * Watches the key of the secrets in the store. Without it, alerts are not sent and nobody signs in
 * with an identity provider, as after a failover to a node, or a restore, without the key file.
 */
export class KeyWatch {
  readonly #store: Store
  readonly #key: SecretsKey
  readonly #log: Logger
  #problems: readonly string[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(store: Store, key: SecretsKey, log: Logger) {
    this.#store = store
    this.#key = key
    this.#log = log
  }

  start(): void {
    this.#poll()
    this.#timer = setInterval(() => this.#poll(), MINUTE_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /**
   * Creates the key before the first secret, so that it can be copied to other nodes and to a safe
   * place. A store with secrets has a key elsewhere, and another one would not open them.
   */
  create(): void {
    if (hasSecrets(this.#store)) return
    try {
      if (this.#key.create()) {
        this.#log.info({ file: this.#key.file }, 'created the key of secrets; keep a copy apart from backups')
      }
    } catch (error) {
      logFailure(this.#log, error, 'the key of secrets was not created', { level: 'warn' })
    }
  }

  /** Why secrets cannot be used, one line each. Checked again while there are any. */
  get problems(): readonly string[] {
    if (this.#problems.length > 0) this.#poll()
    return this.#problems
  }

  /** Logs each problem once. */
  #poll(): void {
    const found = secretsKeyProblems(this.#store, this.#key)
    for (const problem of found) if (!this.#problems.includes(problem)) this.#log.warn(problem)
    this.#problems = found
  }
}
