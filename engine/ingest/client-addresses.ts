import { canonicalAddress } from '../process/network.ts'

const CLIENTS_REMEMBERED = 4096

/** The canonical text of clients' addresses. Remembers IPv6 addresses by their text in messages. */
export class ClientAddresses {
  readonly #canonical = new Map<string, string>()

  canonical(text: string): string {
    if (!text.includes(':')) return text
    const known = this.#canonical.get(text)
    if (known !== undefined) return known
    const canonical = canonicalAddress(text)
    if (this.#canonical.size >= CLIENTS_REMEMBERED) this.#canonical.clear()
    this.#canonical.set(text, canonical)
    return canonical
  }
}
