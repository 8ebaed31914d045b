import type { Listener, Source } from './sources.ts'
import type { KnownToken } from './token-authenticator.ts'

/**
 * Where messages come from: a connection, a datagram peer or a file. Caches the token and source of
 * the previous message.
 */
export class Origin {
  readonly listener: Listener
  readonly address: string
  /** The local port, to which a token can be bound. */
  readonly port: number
  token: KnownToken | undefined
  boundToken: KnownToken | undefined
  bindingsRead = 0
  source: Source | undefined
  /** The token of all messages of a file, whatever the messages contain. */
  readonly givenToken: KnownToken | undefined
  /**
   * What to do with a match: store it, count it as a duplicate, or count it without storing (dry
   * run).
   */
  matched: 'store' | 'repeat' | 'dry' = 'store'

  constructor(listener: Listener, address: string, port: number, givenToken?: KnownToken) {
    this.listener = listener
    this.address = address
    this.port = port
    this.givenToken = givenToken
  }
}
