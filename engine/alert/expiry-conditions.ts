import { DAY_MS, isoSeconds } from '../kernel/process/clock.ts'
import { type Secret, statusOf } from '../store/secrets.ts'
import { type Condition, type ConditionInput, lineOf, type RuleGroup } from './condition.ts'

/** API keys and approvals that end, and API keys that nobody uses. */
export const EXPIRY_RULES: RuleGroup = {
  name: 'expiry',
  rules: ['api-key-unused', 'api-key-expiring', 'approval-expiring'],
  remembered: () => [],
  fingerprint: () => '',
  conditions(input) {
    const { store, organization, nowMs } = input
    const isActive = (secret: Secret): boolean => statusOf(secret, nowMs) === 'active'
    const keys = store.apiKeys.ofOrganization(organization.id).filter(isActive)
    return {
      'api-key-unused': keys.flatMap((key) => unusedKey(input, key)),
      'api-key-expiring': keys.flatMap((key) => expiringKey(input, key)),
      'approval-expiring': expiringApprovals(input),
    }
  },
}

function unusedKey({ store, nowMs, threshold }: ConditionInput, key: Secret): Condition[] {
  const { id, organizationId, label, visible, createdAtMs } = key
  const lastUseMs = store.keyUses.lastUseMs(organizationId, id)
  const sinceMs = Math.max(createdAtMs, lastUseMs)
  const days = threshold('api-key-unused')
  if (nowMs - sinceMs < days * DAY_MS) return []
  return [
    {
      subject: { kind: 'api-key', id, name: lineOf(label) },
      period: String(sinceMs),
      title: `API key ${lineOf(label)} was not used for ${days} days`,
      details: {
        visible,
        created_at: isoSeconds(createdAtMs),
        last_used_at: lastUseMs === 0 ? '' : isoSeconds(lastUseMs),
      },
    },
  ]
}

function expiringKey(
  { nowMs, threshold }: ConditionInput,
  { id, label, visible, expiresAtMs = 0 }: Secret,
): Condition[] {
  if (expiresAtMs === 0 || expiresAtMs - nowMs > threshold('api-key-expiring') * DAY_MS) return []
  return [
    {
      subject: { kind: 'api-key', id, name: lineOf(label) },
      period: String(expiresAtMs),
      title: `API key ${lineOf(label)} expires at ${isoSeconds(expiresAtMs)}`,
      details: { visible, expires_at: isoSeconds(expiresAtMs) },
    },
  ]
}

function expiringApprovals({ store, organization, nowMs, threshold, nameOf }: ConditionInput): Condition[] {
  const beforeMs = nowMs + threshold('approval-expiring') * DAY_MS
  return [...store.decisions.last(organization.id)].flatMap(([platformId, { kind, expiresAtMs }]) => {
    if (kind !== 'approved' || expiresAtMs === 0 || expiresAtMs <= nowMs || expiresAtMs > beforeMs) return []
    const name = lineOf(nameOf(platformId))
    return {
      subject: { kind: 'approval', id: platformId, name },
      period: String(expiresAtMs),
      title: `The approval of ${name} expires at ${isoSeconds(expiresAtMs)}`,
      details: { expires_at: isoSeconds(expiresAtMs) },
    }
  })
}
