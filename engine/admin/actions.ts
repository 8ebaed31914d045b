import type { Role } from '../store/members.ts'

/**
 * What can be read or changed, with the minimum role of each. Changes appear in the audit log.
 * `operator`: anyone with write access to the data directory. Members cannot change plans or the
 * set of organizations. docs/reference/administration.md has the same table.
 */
export const ACTIONS = {
  'organization.create': 'operator',
  'organization.plan': 'operator',
  'store.backup': 'operator',
  'store.restore': 'operator',
  'registry.add-service-wide': 'operator',
  'registry.remove-service-wide': 'operator',
  'registry.provision': 'operator',
  'registry.add': 'admin',
  'registry.remove': 'admin',
  'organization.remove': 'operator',
  'organization.rename': 'owner',
  'organization.set': 'admin',
  'organization.read': 'viewer',
  'discovery.read': 'viewer',
  'source.read': 'viewer',
  'assessment.read': 'viewer',
  'recommendation.read': 'viewer',
  'member.read': 'member',
  'token.read': 'member',
  'api-key.read': 'admin',
  'audit.read': 'admin',
  'file.try': 'member',
  'member.add': 'owner',
  'member.role': 'owner',
  'member.remove': 'owner',
  'member.invite': 'owner',
  'member.accept': 'viewer',
  'setup-link.create': 'operator',
  'password-link.create': 'operator',
  'password.set': 'viewer',
  'passkey.add': 'viewer',
  'passkey.rename': 'viewer',
  'passkey.remove': 'viewer',
  'passkey.block': 'viewer',
  'session.create': 'viewer',
  'session.end': 'viewer',
  'api-key.create': 'admin',
  'api-key.rotate': 'admin',
  'api-key.revoke': 'admin',
  'token.generate': 'admin',
  'token.set': 'admin',
  'token.revoke': 'admin',
  'token.bind': 'admin',
  'token.unbind': 'admin',
  'approval.add': 'admin',
  'approval.remove': 'admin',
  'scan.request': 'admin',
  'ingest.file': 'operator',
  'retention.set': 'admin',
  'retention.apply': 'admin',
  'assessment.create': 'member',
  'assessment.change': 'member',
  'assessment.import': 'admin',
  'assessment.complete': 'admin',
  'assessment.remove': 'admin',
  'recommendation.status': 'member',
} as const satisfies Record<string, Role | 'operator'>
export type Action = keyof typeof ACTIONS

/**
 * Actions that only remove access or data, or only record an action. They must work on a full disk.
 */
export const REMOVALS: ReadonlySet<Action> = new Set<Action>([
  'api-key.revoke',
  'token.revoke',
  'token.unbind',
  'member.remove',
  'organization.remove',
  'approval.remove',
  'registry.remove',
  'registry.remove-service-wide',
  'scan.request',
  'ingest.file',
  'retention.apply',
])
