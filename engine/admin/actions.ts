import type { Role } from '../store/members.ts'

/**
 * What can be read or changed, and the least role that may. Each change is a word of the audit log. `operator` is whoever has the data directory; what a plan
 * includes and which organizations there are is not for members to say. docs/reference/administration.md has the same table.
 */
export const ACTIONS = {
  'organization.create': 'operator',
  'organization.plan': 'operator',
  'store.restore': 'operator',
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
  'own-platform.set': 'admin',
  'sign-in.set': 'owner',
  'member.add': 'owner',
  'member.role': 'owner',
  'member.remove': 'owner',
  'member.invite': 'owner',
  'member.accept': 'viewer',
  'setup-link.create': 'operator',
  'password-link.create': 'operator',
  'password.set': 'viewer',
  'session.create': 'viewer',
  'session.end': 'viewer',
  'api-key.create': 'admin',
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

/** What takes something away, from people or from the disk, or only writes down what was done: it must go also when the disk is full. */
export const REMOVALS: ReadonlySet<Action> = new Set<Action>([
  'api-key.revoke',
  'token.revoke',
  'token.unbind',
  'member.remove',
  'approval.remove',
  'scan.request',
  'ingest.file',
  'retention.apply',
])
