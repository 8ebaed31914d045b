/**
 * A map of at most `max` entries. Setting an entry makes it the newest one; beyond the limit the
 * oldest entry is removed. A cache that sets entries again on use removes the least recently used.
 */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #max: number

  constructor(max: number) {
    super()
    this.#max = max
  }

  override set(key: K, value: V): this {
    // Map.set would leave an existing entry at its old position.
    this.delete(key)
    super.set(key, value)
    const { value: oldest } = this.keys().next()
    if (this.size > this.#max && oldest !== undefined) this.delete(oldest)
    return this
  }
}
