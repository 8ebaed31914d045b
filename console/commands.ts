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

/** The context of a command, in the writing thread. */
export interface CommandContext {
  /**
   * Acts on behalf of the member who sent the command: checks the role, and writes the audit entry.
   */
  readonly administration: Administration
  readonly organization: Organization
  readonly catalog: Catalog
  /** The platforms that all organizations share, which custom platforms change. */
  readonly sharedCatalog: Catalog
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

type Command<P, R> = (context: CommandContext, parameters: P) => R

/**
 * The changes that pages can make. Each is one use case of engine/admin. Parameters and results
 * pass between threads, so they are plain values.
 */
export const COMMANDS = {
  'api-key.create': ({ administration, organization }, given: { label: string; scopes: readonly Scope[] }) =>
    administration.apiKeys.create(organization, given.label, given.scopes),
  'api-key.revoke': ({ administration, organization }, given: { id: string }) =>
    administration.apiKeys.revoke(organization, given.id),
  'api-key.rotate': (
    { administration, organization },
    given: { id: string; graceMs: number; expiresAtMs: number | undefined },
  ) => administration.apiKeys.rotate(organization, given.id, given),
  'token.generate': ({ administration, organization }, given: { label: string }) =>
    administration.tokens.generate(organization, given.label),
  'token.revoke': ({ administration, organization }, given: { id: string }) =>
    administration.tokens.revoke(organization, given.id),
  'approval.add': ({ administration, organization, catalog }, { platforms, ...terms }: PlatformDecision) =>
    administration.approvals.add(organization, catalog, platforms, terms),
  'approval.reject': ({ administration, organization, catalog }, { platforms, ...terms }: PlatformDecision) =>
    administration.approvals.reject(organization, catalog, platforms, terms),
  'approval.remove': ({ administration, organization, catalog }, given: { platforms: readonly string[] }) =>
    administration.approvals.remove(organization, catalog, given.platforms),
  'approval.undo': ({ administration, organization }, given: { decidedAtMs: number }) =>
    administration.approvals.undo(organization, given.decidedAtMs),
  'scan.request': ({ administration, organization }, _: Record<string, never>) =>
    administration.scans.request(organization),
  'organization.set': (
    { administration, organization },
    given: Pick<OrganizationSettings, 'domain' | 'scanFrequency' | 'evidenceWindowDays'>,
  ) => administration.organizations.set(organization, given),
  'organization.rename': ({ administration, organization }, given: { name: string }) =>
    administration.organizations.rename(organization, given.name),
  'retention.set': ({ administration, organization }, given: Partial<Retention>) =>
    administration.retention.set(organization, given),
  'client.read': ({ administration, organization }, given: ClientReading) =>
    administration.clients.note(organization, given),
  'client.reveal': ({ administration, organization }, given: { pseudonym: string }) =>
    administration.clients.reveal(organization, given.pseudonym),
  'client.export': ({ administration, organization }, given: { person: readonly string[] }) =>
    administration.persons.noteExport(organization, given.person),
  // The scan that this requests finishes the erasure.
  'client.erase': ({ administration, organization }, given: { person: readonly string[] }) =>
    administration.persons.erase(organization, given.person),
  // The scan that this requests erases what must not be kept.
  'client.set': (
    { administration, organization },
    given: Pick<OrganizationSettings, 'clients' | 'apiClients' | 'alertPeople'>,
  ) => administration.organizations.set(organization, given),
  'client.name': ({ administration: { clientNames, clientGroups }, organization }, given: NamesOfClients) => {
    if ('groups' in given) clientGroups.replace(organization, given)
    else if ('hosts' in given) clientNames.importHosts(organization, given.hosts)
    else if (given.name === undefined) clientNames.removeNetwork(organization, given.network)
    else clientNames.addNetwork(organization, given.network, given.name)
  },
  'manager.notify': ({ administration, organization }, given: ManagerMails) => {
    administration.managers.notifyManagers(organization, given)
  },
  'view.save': ({ administration, organization }, given: SavedView) =>
    administration.savedViews.save(organization, given),
  'view.remove': ({ administration, organization }, given: { name: string }) =>
    administration.savedViews.remove(organization, given.name),
  'block-list-link.create': (
    { administration, organization },
    { label, ...selection }: { label: string } & BlockListSelection,
  ) => administration.blockListLinks.create(organization, label, selection),
  'block-list-link.revoke': ({ administration, organization }, given: { id: string }) =>
    administration.blockListLinks.revoke(organization, given.id),
  'alert-channel.add': ({ administration, organization }, given: SealedChannel) =>
    administration.alerts.addChannel(organization, given),
  'alert-channel.remove': ({ administration, organization }, given: { id: string }) =>
    administration.alerts.removeChannel(organization, given.id),
  'alert-channel.test': ({ administration, organization }, given: { id: string }) =>
    administration.alerts.beginTest(organization, given.id),
  'alert-rule.set': ({ administration, organization }, given: { rule: AlertRule; threshold: number | undefined }) =>
    administration.alerts.setThreshold(organization, given.rule, given.threshold),
  'alert-rule.mute': ({ administration, organization }, given: { rule: AlertRule }) =>
    administration.alerts.mute(organization, given.rule, true),
  'alert-rule.unmute': ({ administration, organization }, given: { rule: AlertRule }) =>
    administration.alerts.mute(organization, given.rule, false),
  'alert.retry': ({ administration, organization }, given: DeadLetters) =>
    administration.alerts.retry(organization, given.channelId, given.sequence),
  'alert.discard': ({ administration, organization }, given: DeadLetters) =>
    administration.alerts.discard(organization, given.channelId, given.sequence),
  'registry.add': ({ administration, organization, sharedCatalog }, given: ReadRegistryFile) =>
    administration.ownPlatforms.add(organization, sharedCatalog, given),
  'registry.remove': ({ administration, organization }, given: { ids: readonly string[] }) =>
    administration.ownPlatforms.remove(organization, given.ids),
  'candidate.dismiss': ({ administration, organization }, given: { name: string }) =>
    administration.candidates.dismiss(organization, given.name),
  'candidate.restore': ({ administration, organization }, given: { name: string }) =>
    administration.candidates.restore(organization, given.name),
  'assessment.create': (
    { administration, organization },
    given: {
      framework: AnyFrameworkId
      title: string | undefined
      profile: readonly string[] | undefined
      /** Whose answers are carried over. */
      from: string | undefined
    },
  ) => administration.assessments.create(organization, given.framework, given.title, given.profile, given.from),
  'assessment.update': ({ administration, organization }, given: { id: string }) =>
    administration.assessments.update(organization, given.id),
  'assessment.change': (
    { administration, organization },
    given: {
      id: string
      item: string
      answer: Answer | undefined
      note: string | undefined
      seen: SeenItem | undefined
    },
  ) => administration.assessments.answer(organization, given.id, given.item, given.answer, given.note, given.seen),
  'assessment.assign': (
    { administration, organization },
    { id, item, seen, ...given }: { id: string; item: string; seen: SeenWork } & Partial<SeenWork>,
  ) => administration.assessments.assign(organization, id, item, given, seen),
  'assessment.comment': ({ administration, organization }, given: { id: string; item: string; text: string }) =>
    administration.assessments.comment(organization, given.id, given.item, given.text),
  'assessment.submit': ({ administration, organization }, given: { id: string; item: string }) =>
    administration.assessments.review(organization, given.id, given.item, 'submit'),
  'assessment.approve': (
    { administration, organization },
    given: { id: string; item: string; step: 'approve' | 'reopen' },
  ) => administration.assessments.review(organization, given.id, given.item, given.step),
  'assessment.complete': ({ administration, organization }, given: { id: string }) =>
    administration.assessments.complete(organization, given.id),
  'framework.add': ({ administration, organization }, given: ReadFramework) =>
    administration.frameworks.add(organization, given),
  'framework.remove': ({ administration, organization }, given: { id: string }) =>
    administration.frameworks.remove(organization, given.id),
  'recommendation.status': (
    { administration, organization },
    given: { id: string; status: RecommendationStatus; reason: string },
  ) => administration.recommendations.setStatus(organization, given.id, given.status, given.reason),
  'recommendation.owner': (
    { administration, organization },
    { id, ...given }: { id: string; owner: string; dueOn: string },
  ) => administration.recommendations.assign(organization, id, given),
  'member.add': ({ administration, organization }, given: { name: string; role: Role }) =>
    administration.members.add(organization, given.name, given.role),
  'member.invite': ({ administration, organization }, given: { name: string }) =>
    administration.accountLinks.invite(organization, given.name),
  'invitation.withdraw': ({ administration, organization }, given: { name: string }) =>
    administration.accountLinks.withdraw(organization, given.name),
  'member.role': ({ administration, organization }, given: { name: string; role: Role }) =>
    administration.members.setRole(organization, given.name, given.role),
  'member.remove': ({ administration, organization }, given: { name: string }) =>
    administration.members.remove(organization, given.name),
  'member.allow': ({ administration, organization }, given: { name: string }) =>
    administration.members.allow(organization, given.name),
  'sign-in.set': (
    { administration, organization },
    given: { settings: SignInSettings; clientSecret: SealedSecret | undefined },
  ) => administration.signIn.set(organization, given.settings, given.clientSecret),
  'sign-in.remove': ({ administration, organization }, _: Record<string, never>) =>
    administration.signIn.remove(organization),
} as const satisfies Record<string, Command<never, unknown>>

export type CommandName = keyof typeof COMMANDS
export type CommandParameters<N extends CommandName> = Parameters<(typeof COMMANDS)[N]>[1]
export type CommandResult<N extends CommandName> = ReturnType<(typeof COMMANDS)[N]>
