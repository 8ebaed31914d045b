import type { Accounts, LinkUse, SessionsOfUser, SignInBrowser } from '../engine/admin/accounts.ts'
import type { Administration } from '../engine/admin/administration.ts'
import type { SealedChannel } from '../engine/admin/alerts.ts'
import type { DecisionTerms } from '../engine/admin/approvals.ts'
import type { StoredGroups } from '../engine/admin/client-groups.ts'
import type { SpansByAddress } from '../engine/admin/client-names.ts'
import type { ClientReading } from '../engine/admin/clients.ts'
import type { FederatedClaims } from '../engine/admin/federation.ts'
import type { ManagerMails } from '../engine/admin/managers.ts'
import type { OrganizationSettings } from '../engine/admin/organizations.ts'
import type { ReadRegistryFile } from '../engine/admin/own-platforms.ts'
import type { NewPasskey, PasskeyOfUser, PasskeyUse } from '../engine/admin/passkeys.ts'
import type { SignInSettings } from '../engine/admin/sign-in.ts'
import type { ReadFramework } from '../engine/assess/framework-file.ts'
import type { SeenItem, SeenWork } from '../engine/assess/work.ts'
import type { SealedSecret } from '../engine/kernel/process/secrets-key.ts'
import type { AlertRule } from '../engine/store/alerts.ts'
import type { Answer } from '../engine/store/assessments.ts'
import type { AnyFrameworkId } from '../engine/store/framework.ts'
import type { Role } from '../engine/store/members.ts'
import type { Organization, Retention } from '../engine/store/organizations.ts'
import type { RecommendationStatus } from '../engine/store/recommendations.ts'
import type { SavedView } from '../engine/store/saved-views.ts'
import type { BlockListSelection, Scope } from '../engine/store/secrets.ts'
import type { Catalog } from '../registry/catalog.ts'

type AccountCommand<P, R> = (accounts: Accounts, parameters: P) => R

/** Changes to users and sessions, which belong to no single organization. */
export const ACCOUNT_COMMANDS = {
  'link.use': (accounts, use: LinkUse) => accounts.useLink(use),
  'password.set': (
    accounts,
    given: { readonly userId: string; readonly passwordHash: string; readonly keptHash: string },
  ) => accounts.setPassword(given),
  'session.create': (accounts, given: { readonly userId: string; readonly from: SignInBrowser }) =>
    accounts.signIn(given.userId, given.from),
  'federation.sign-in': (accounts, claims: FederatedClaims) => accounts.federation.signIn(claims),
  'federation.connect': (accounts, given: { readonly claims: FederatedClaims; readonly userId: string }) =>
    accounts.federation.connect(given.claims, given.userId),
  'session.confirm': (accounts, given: { readonly hash: string; readonly nextHash: string }) =>
    accounts.confirmSession(given),
  'session.organization': (accounts, given: { readonly hash: string; readonly organizationId: string }) =>
    accounts.switchOrganization(given),
  'session.end': (accounts, given: SessionsOfUser & { readonly id: string }) => accounts.endSession(given),
  'session.end-others': (accounts, given: SessionsOfUser & { readonly keptId: string }) =>
    accounts.endOtherSessions(given),
  'passkey.add': (accounts, given: NewPasskey) => accounts.passkeys.add(given),
  'passkey.rename': (accounts, given: PasskeyOfUser & { readonly name: string }) => accounts.passkeys.rename(given),
  'passkey.remove': (accounts, given: PasskeyOfUser) => accounts.passkeys.remove(given),
  'passkey.use': (accounts, given: PasskeyUse) => accounts.passkeys.use(given),
  'sessions.used': (accounts, uses: readonly { readonly hash: string; readonly usedAtMs: number }[]) =>
    accounts.noteUses(uses),
} as const satisfies Record<string, AccountCommand<never, unknown>>

export type AccountCommandName = keyof typeof ACCOUNT_COMMANDS
export type AccountParameters<N extends AccountCommandName> = Parameters<(typeof ACCOUNT_COMMANDS)[N]>[1]
export type AccountResult<N extends AccountCommandName> = ReturnType<(typeof ACCOUNT_COMMANDS)[N]>

export function runAccountCommand(accounts: Accounts, command: AccountCommandName, parameters: unknown): unknown {
  const run = ACCOUNT_COMMANDS[command] as (accounts: Accounts, parameters: unknown) => unknown
  return run(accounts, parameters)
}

/** The platforms that commands name, in the writing thread. */
interface Catalogs {
  readonly own: Catalog
  /** The platforms that all organizations share, which custom platforms change. */
  readonly shared: Catalog
}

/** What a command names: a key, a token, a channel, an assessment. */
interface Id {
  readonly id: string
}
interface Name {
  readonly name: string
}

/** A decision about platforms, by id. */
interface PlatformDecision extends DecisionTerms {
  readonly platforms: readonly string[]
}

/** The names of all addresses; all groups; or a network with its new name, or none. */
type NamesOfClients =
  | StoredGroups
  | { readonly hosts: SpansByAddress }
  | { readonly network: string; readonly name: string | undefined }

/** One dead letter of a channel, or all of them. */
export interface DeadLetters {
  readonly channelId: string
  readonly sequence: number | undefined
}

/**
 * `by` acts on behalf of the member who sent the command: it checks the role, and writes the audit
 * entry.
 */
export type Command<P, R> = (by: Administration, organization: Organization, parameters: P, catalogs: Catalogs) => R

/**
 * The changes that pages can make. Each is one use case of engine/admin. Parameters and results
 * pass between threads, so they are plain values.
 */
export const COMMANDS = {
  'api-key.create': (by, organization, given: { label: string; scopes: readonly Scope[] }) =>
    by.apiKeys.create(organization, given.label, given.scopes),
  'api-key.revoke': (by, organization, { id }: Id) => by.apiKeys.revoke(organization, id),
  'api-key.rotate': (by, organization, given: { id: string; graceMs: number; expiresAtMs: number | undefined }) =>
    by.apiKeys.rotate(organization, given.id, given),
  'token.generate': (by, organization, given: { label: string }) => by.tokens.generate(organization, given.label),
  'token.revoke': (by, organization, { id }: Id) => by.tokens.revoke(organization, id),
  'approval.add': (by, organization, { platforms, ...terms }: PlatformDecision, { own }) =>
    by.approvals.add(organization, own, platforms, terms),
  'approval.reject': (by, organization, { platforms, ...terms }: PlatformDecision, { own }) =>
    by.approvals.reject(organization, own, platforms, terms),
  'approval.remove': (by, organization, given: { platforms: readonly string[] }, { own }) =>
    by.approvals.remove(organization, own, given.platforms),
  'approval.undo': (by, organization, given: { decidedAtMs: number }) =>
    by.approvals.undo(organization, given.decidedAtMs),
  'scan.request': (by, organization, _: Record<string, never>) => by.scans.request(organization),
  'organization.set': (
    by,
    organization,
    given: Pick<OrganizationSettings, 'domain' | 'scanFrequency' | 'evidenceWindowDays'>,
  ) => by.organizations.set(organization, given),
  'organization.rename': (by, organization, { name }: Name) => by.organizations.rename(organization, name),
  'retention.set': (by, organization, given: Partial<Retention>) => by.retention.set(organization, given),
  'client.read': (by, organization, given: ClientReading) => by.clients.note(organization, given),
  'client.reveal': (by, organization, given: { pseudonym: string }) => by.clients.reveal(organization, given.pseudonym),
  'client.export': (by, organization, given: { person: readonly string[] }) =>
    by.persons.noteExport(organization, given.person),
  // The scan that this requests finishes the erasure.
  'client.erase': (by, organization, given: { person: readonly string[] }) =>
    by.persons.erase(organization, given.person),
  // The scan that this requests erases what must not be kept.
  'client.set': (by, organization, given: Pick<OrganizationSettings, 'clients' | 'apiClients' | 'alertPeople'>) =>
    by.organizations.set(organization, given),
  'client.name': ({ clientNames, clientGroups }, organization, given: NamesOfClients) => {
    if ('groups' in given) clientGroups.replace(organization, given)
    else if ('hosts' in given) clientNames.importHosts(organization, given.hosts)
    else if (given.name === undefined) clientNames.removeNetwork(organization, given.network)
    else clientNames.addNetwork(organization, given.network, given.name)
  },
  'manager.notify': (by, organization, given: ManagerMails) => {
    by.managers.notifyManagers(organization, given)
  },
  'view.save': (by, organization, given: SavedView) => by.savedViews.save(organization, given),
  'view.remove': (by, organization, { name }: Name) => by.savedViews.remove(organization, name),
  'block-list-link.create': (by, organization, { label, ...selection }: { label: string } & BlockListSelection) =>
    by.blockListLinks.create(organization, label, selection),
  'block-list-link.revoke': (by, organization, { id }: Id) => by.blockListLinks.revoke(organization, id),
  'alert-channel.add': (by, organization, given: SealedChannel) => by.alerts.addChannel(organization, given),
  'alert-channel.remove': (by, organization, { id }: Id) => by.alerts.removeChannel(organization, id),
  'alert-channel.test': (by, organization, { id }: Id) => by.alerts.beginTest(organization, id),
  'alert-rule.set': (by, organization, given: { rule: AlertRule; threshold: number | undefined }) =>
    by.alerts.setThreshold(organization, given.rule, given.threshold),
  'alert-rule.mute': (by, organization, given: { rule: AlertRule }) => by.alerts.mute(organization, given.rule, true),
  'alert-rule.unmute': (by, organization, given: { rule: AlertRule }) =>
    by.alerts.mute(organization, given.rule, false),
  'alert.retry': (by, organization, given: DeadLetters) =>
    by.alerts.retry(organization, given.channelId, given.sequence),
  'alert.discard': (by, organization, given: DeadLetters) =>
    by.alerts.discard(organization, given.channelId, given.sequence),
  'registry.add': (by, organization, given: ReadRegistryFile, { shared }) =>
    by.ownPlatforms.add(organization, shared, given),
  'registry.remove': (by, organization, given: { ids: readonly string[] }) =>
    by.ownPlatforms.remove(organization, given.ids),
  'candidate.dismiss': (by, organization, { name }: Name) => by.candidates.dismiss(organization, name),
  'candidate.restore': (by, organization, { name }: Name) => by.candidates.restore(organization, name),
  'assessment.create': (
    by,
    organization,
    given: {
      framework: AnyFrameworkId
      title: string | undefined
      profile: readonly string[] | undefined
      /** Whose answers are carried over. */
      from: string | undefined
    },
  ) => by.assessments.create(organization, given.framework, given.title, given.profile, given.from),
  'assessment.update': (by, organization, { id }: Id) => by.assessments.update(organization, id),
  'assessment.change': (
    by,
    organization,
    given: {
      id: string
      item: string
      answer: Answer | undefined
      note: string | undefined
      seen: SeenItem | undefined
    },
  ) => by.assessments.answer(organization, given.id, given.item, given.answer, given.note, given.seen),
  'assessment.assign': (
    by,
    organization,
    { id, item, seen, ...given }: { id: string; item: string; seen: SeenWork } & Partial<SeenWork>,
  ) => by.assessments.assign(organization, id, item, given, seen),
  'assessment.comment': (by, organization, given: { id: string; item: string; text: string }) =>
    by.assessments.comment(organization, given.id, given.item, given.text),
  'assessment.submit': (by, organization, given: { id: string; item: string }) =>
    by.assessments.review(organization, given.id, given.item, 'submit'),
  'assessment.approve': (by, organization, given: { id: string; item: string; step: 'approve' | 'reopen' }) =>
    by.assessments.review(organization, given.id, given.item, given.step),
  'assessment.complete': (by, organization, { id }: Id) => by.assessments.complete(organization, id),
  'framework.add': (by, organization, given: ReadFramework) => by.frameworks.add(organization, given),
  'framework.remove': (by, organization, { id }: Id) => by.frameworks.remove(organization, id),
  'recommendation.status': (by, organization, given: { id: string; status: RecommendationStatus; reason: string }) =>
    by.recommendations.setStatus(organization, given.id, given.status, given.reason),
  'recommendation.owner': (by, organization, { id, ...given }: { id: string; owner: string; dueOn: string }) =>
    by.recommendations.assign(organization, id, given),
  'member.add': (by, organization, given: { name: string; role: Role }) =>
    by.members.add(organization, given.name, given.role),
  'member.invite': (by, organization, { name }: Name) => by.accountLinks.invite(organization, name),
  'invitation.withdraw': (by, organization, { name }: Name) => by.accountLinks.withdraw(organization, name),
  'member.role': (by, organization, given: { name: string; role: Role }) =>
    by.members.setRole(organization, given.name, given.role),
  'member.remove': (by, organization, { name }: Name) => by.members.remove(organization, name),
  'member.allow': (by, organization, { name }: Name) => by.members.allow(organization, name),
  'sign-in.set': (by, organization, given: { settings: SignInSettings; clientSecret: SealedSecret | undefined }) =>
    by.signIn.set(organization, given.settings, given.clientSecret),
  'sign-in.remove': (by, organization, _: Record<string, never>) => by.signIn.remove(organization),
} as const satisfies Record<string, Command<never, unknown>>

export type CommandName = keyof typeof COMMANDS
export type CommandParameters<N extends CommandName> = Parameters<(typeof COMMANDS)[N]>[2]
export type CommandResult<N extends CommandName> = ReturnType<(typeof COMMANDS)[N]>
