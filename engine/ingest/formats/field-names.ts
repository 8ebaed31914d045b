import { isDigit, isLetter } from './bytes.ts'

/** What a field may tell. Its id is FIELD_RANKS * kind + rank: the smaller the rank, the rather it is believed. */
export const FieldKind = { time: 0, client: 1, host: 2, url: 3, action: 4, control: 5 } as const
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind]

export const FIELD_RANKS = 32
export const FIELD_KINDS = 6
export const NO_FIELD = -1

/*
 * Under which names vendors tell what: lower case, letters and digits only. A word stands for a rank, words with a slash between share one.
 * The address inside comes before the one outside (Netskope writes both), a name that was asked for before a name that may be a machine's own. A
 * `source` or `destination` may be an address or a name: as the client only an address is taken, as the host only a name.
 */
const TIMES =
  'timegeneratedhighresolution/xcstimestamp eventtime epochtime timestamp timegenerated generatetime/generatedtime devtime datetime time receivetime receivedtime logtime eventdate starttime start rt date ts t'
const CLIENTS =
  'xcsuserip userip clientip srcip sourceip sourceaddress src cip csip/cltip/cltintip/cltsip clientaddress internalip srcipv6 sourceipaddress client clientipaddress remoteaddr initiator requester hostip ipaddress ip externalip clientpublicip/cltpubip source'
const HOSTS =
  'qh/dnsquestionname/dnsrrname/tlssni/quicsni/httphostname domain/urldomain/destinationdomain/serverdomain dsthost desthost/destinationhost/targethost dstname destinationhostname/destinationfqdn dhost cshost/xcshost qname query queryname questionname requesteddomain fqdn sni/xcssni dnsrequest dnsreq/dnsquery rrname destination hostname servername host site website name'
const URLS = 'url/urloriginal/urlfull urlfilename requesturl uri csuri/xcsurl request eurl fullurl link'
const ACTIONS =
  'action/eventaction/reqaction/policyaction/alertaction act disp disposition verdict labelsrequeststatus decision result status'

/** The id of each name that more than one vendor uses. */
export const SYNONYMS: Readonly<Record<string, number>> = {
  ...idsOf(FieldKind.time, TIMES),
  ...idsOf(FieldKind.client, CLIENTS),
  ...idsOf(FieldKind.host, HOSTS),
  ...idsOf(FieldKind.url, URLS),
  ...idsOf(FieldKind.action, ACTIONS),
}

export const DATE_FIELD = SYNONYMS['date'] ?? NO_FIELD
export const TIME_FIELD = SYNONYMS['time'] ?? NO_FIELD
/** A forwarder's envelope has one for itself. */
export const HOST_FIELD = SYNONYMS['host'] ?? NO_FIELD
export const SOURCE_FIELD = SYNONYMS['source'] ?? NO_FIELD
/** May be a file's name as well as a domain's; so may PAN-OS's `URL/Filename`. */
export const NAME_FIELD = SYNONYMS['name'] ?? NO_FIELD
export const URL_OR_FILE_FIELD = SYNONYMS['urlfilename'] ?? NO_FIELD

/** The ids of words in the order of their ranks; a slash stands between words of one rank. */
export function idsOf(kind: FieldKind, words: string): Record<string, number> {
  const ids: Record<string, number> = {}
  for (const [rank, alike] of words.split(' ').entries()) {
    for (const word of alike.split('/')) ids[word] = kind * FIELD_RANKS + rank
  }
  return ids
}

/** As KeyTable, but what is neither letter nor digit counts for nothing: `src_ip`, `Src IP` and `source.ip` are found by letters and digits. */
export class NameTable {
  readonly #words: readonly string[]
  readonly #ids: Int32Array
  readonly #slots: Int32Array
  readonly #mask: number
  readonly #lengthMax: number
  /** 1 for each pair of first and last letter that some word has: most names are told from all words by that (1.15 times as fast, measured). */
  readonly #ends = new Uint8Array(1 << 14)

  /** Words of lower-case letters and digits, each with its id. */
  constructor(idOfWord: Readonly<Record<string, number>>) {
    this.#words = Object.keys(idOfWord)
    this.#ids = Int32Array.from(Object.values(idOfWord))
    // With as many separators as letters.
    this.#lengthMax = Math.max(...this.#words.map((word) => word.length)) * 2
    let size = 16
    while (size < this.#words.length * 4) size *= 2
    this.#mask = size - 1
    this.#slots = new Int32Array(size).fill(NO_FIELD)
    for (const [index, word] of this.#words.entries()) {
      this.#ends[endsOf(word.charCodeAt(0), word.charCodeAt(word.length - 1))] = 1
      let hash = SEED
      for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), PRIME)
      let slot = (hash ^ (hash >>> 15)) & this.#mask
      while (this.#slots[slot] !== NO_FIELD) slot = (slot + 1) & this.#mask
      this.#slots[slot] = index
    }
  }

  /** The id of the name in [start, end), or NO_FIELD. */
  find(view: DataView, start: number, end: number): number {
    if (end - start > this.#lengthMax || end <= start) return NO_FIELD
    const first = LETTER[view.getUint8(start)] ?? 0
    const last = LETTER[view.getUint8(end - 1)] ?? 0
    if (first !== 0 && last !== 0 && this.#ends[endsOf(first, last)] !== 1) return NO_FIELD
    let hash = SEED
    for (let at = start; at < end; at++) {
      const letter = LETTER[view.getUint8(at)] ?? 0
      if (letter !== 0) hash = Math.imul(hash ^ letter, PRIME)
    }
    let slot = (hash ^ (hash >>> 15)) & this.#mask
    for (;;) {
      const index = this.#slots[slot] ?? NO_FIELD
      if (index === NO_FIELD) return NO_FIELD
      if (isWord(view, start, end, this.#words[index] ?? '')) return this.#ids[index] ?? NO_FIELD
      slot = (slot + 1) & this.#mask
    }
  }
}

/** What each byte counts as: a letter in lower case, a digit, or nothing. */
const LETTER = new Uint8Array(256)
for (let byte = 0; byte < 256; byte++) LETTER[byte] = isLetter(byte) ? byte | 0x20 : isDigit(byte) ? byte : 0

/** FNV-1a, 32 bit. */
const SEED = 0x811c9dc5
const PRIME = 0x01000193

function endsOf(first: number, last: number): number {
  return (first << 7) | last
}

function isWord(view: DataView, start: number, end: number, word: string): boolean {
  let index = 0
  for (let at = start; at < end; at++) {
    const letter = LETTER[view.getUint8(at)] ?? 0
    if (letter === 0) continue
    if (index === word.length || letter !== word.charCodeAt(index)) return false
    index++
  }
  return index === word.length
}
