import { type Secret, type SecretStatus, statusOf } from '../../engine/store/secrets.ts'

/** The common facts of an API key and a monitoring token. */
export interface SecretRow {
  readonly id: string
  readonly label: string
  /** The first digits. */
  readonly visible: string
  readonly createdAtMs: number
  readonly status: SecretStatus
  /** 0: it does not expire. */
  readonly expiresAtMs: number
  /** When it was revoked or expired; 0 while it is active. */
  readonly endedAtMs: number
}

export interface SecretsView<Row extends SecretRow> {
  /** Newest first. */
  readonly active: readonly Row[]
  /** Revoked or expired, newest first. */
  readonly ended: readonly Row[]
}

export function secretRow(secret: Secret, nowMs: number): SecretRow {
  const { id, label, visible, createdAtMs, revokedAtMs, expiresAtMs = 0 } = secret
  const status = statusOf(secret, nowMs)
  const endedAtMs = status === 'revoked' ? revokedAtMs : status === 'expired' ? expiresAtMs : 0
  return { id, label, visible, createdAtMs, status, expiresAtMs, endedAtMs }
}

export function secretsView<Row extends SecretRow>(rows: readonly Row[]): SecretsView<Row> {
  const newestFirst = [...rows].sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  return {
    active: newestFirst.filter(({ status }) => status === 'active'),
    ended: newestFirst.filter(({ status }) => status !== 'active'),
  }
}
