import type { Network } from '../kernel/process/network.ts'
import { TargetRefused } from '../kernel/process/outbound-address.ts'

/** The outcome of an attempt to send a message, and whether another attempt can help. */
export type SendOutcome =
  /** The receiver has the message. `answer` is what it said, in one line. */
  | { readonly kind: 'delivered'; readonly answer: string }
  /** A later attempt may help. `afterMs` is the delay that the receiver requested. */
  | { readonly kind: 'retry'; readonly why: string; readonly afterMs?: number }
  /** The receiver will never accept this message. It may accept others. */
  | { readonly kind: 'refused'; readonly why: string }

/** What all senders need. */
export interface SendOptions {
  /** Networks to which the service may connect although they are not public. */
  readonly allowed: readonly Network[]
  /** For the whole attempt. */
  readonly timeoutMs: number
  /** Aborts the attempt. */
  readonly signal: AbortSignal
  /** The program's version, for receivers. */
  readonly version: string
}

/** The longest text of a receiver that is kept, in characters. */
const ANSWER_CHARS_MAX = 200

/** What a receiver said, in one line and without the secrets of the channel. */
export function answerText(text: string, secrets: readonly string[]): string {
  // The longest first: one may contain others.
  const hidden = [...secrets]
    .filter((secret) => secret !== '')
    .sort((a, b) => b.length - a.length)
    .reduce((all, secret) => all.replaceAll(secret, '[secret]'), text)
  return hidden
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .slice(0, ANSWER_CHARS_MAX)
}

export const TOO_LATE = 'no answer in time'

const CODE_TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'the name does not resolve',
  EAI_AGAIN: 'the name does not resolve',
  ECONNRESET: 'the receiver closed the connection',
  EPIPE: 'the receiver closed the connection',
  ETIMEDOUT: TOO_LATE,
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the host',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the receiver does not speak TLS there',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the receiver does not speak TLS there',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is not trusted; pass its CA certificate with --ca-file',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate is not trusted; pass its CA certificate with --ca-file',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate is not trusted; pass its CA certificate with --ca-file',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate is not trusted; pass its CA certificate with --ca-file',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate has other names',
  CERT_HAS_EXPIRED: 'the certificate has expired',
}

/** Why a connection failed. Names no address: it could be one of the internal network. */
export function connectionFailure(error: unknown, signal: AbortSignal): string {
  if (error instanceof TargetRefused) return error.message
  if (signal.aborted) return TOO_LATE
  const { code, message } = error as NodeJS.ErrnoException
  return CODE_TEXTS[code ?? ''] ?? (code === undefined ? message : code)
}
