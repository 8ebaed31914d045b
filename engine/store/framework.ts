/**
 * The frameworks of the specification with their names, in its order, which is also the order of
 * scores.
 */
export const FRAMEWORKS = {
  'ai-security': 'AI Security',
  'cis-v8': 'CIS Controls v8',
  'nist-800-53': 'NIST 800-53',
  'nist-csf-2': 'NIST CSF 2.0',
  hipaa: 'HIPAA',
  'iso-27001': 'ISO 27001',
  'soc-2': 'SOC 2',
  'pci-dss': 'PCI DSS',
} as const
export type FrameworkId = keyof typeof FRAMEWORKS
export const FRAMEWORK_IDS = Object.keys(FRAMEWORKS) as [FrameworkId, ...FrameworkId[]]

/** A framework that an organization added, from a file of its own. */
export type OwnFrameworkId = `own-${string}`
export const OWN_FRAMEWORK_ID = /^own-[a-z0-9-]{1,60}$/
export type AnyFrameworkId = FrameworkId | OwnFrameworkId

export function isBuiltIn(id: AnyFrameworkId): id is FrameworkId {
  return Object.hasOwn(FRAMEWORKS, id)
}

/** The id that a user typed. undefined: neither a built-in one nor one of an organization. */
export function asFrameworkId(text: string | undefined): AnyFrameworkId | undefined {
  const own = text !== undefined && OWN_FRAMEWORK_ID.test(text) ? (text as OwnFrameworkId) : undefined
  return FRAMEWORK_IDS.find((id) => id === text) ?? own
}

/** The name of a framework for people; the id of an organization's own one. */
export function frameworkName(id: AnyFrameworkId): string {
  return isBuiltIn(id) ? FRAMEWORKS[id] : id
}

/** The profiles of each framework: a part of its items, by the name in `baselines` of an item. */
export const PROFILES = {
  'ai-security': ['user', 'builder', 'high-risk-deployer'],
  'cis-v8': ['ig1', 'ig2', 'ig3'],
  'nist-800-53': ['low', 'moderate', 'high'],
  'nist-csf-2': [],
  hipaa: ['required'],
  'iso-27001': [],
  'soc-2': ['security', 'availability', 'processing-integrity', 'confidentiality', 'privacy'],
  'pci-dss': [],
} as const satisfies Readonly<Record<FrameworkId, readonly string[]>>

export const PROFILE_NAMES: ReadonlySet<string> = new Set(Object.values(PROFILES).flat())

/** A profile for people: its names, or how many items were selected. */
export function profileText(profile: readonly string[] | undefined): string {
  if (profile === undefined) return 'all items'
  if (profile.every((word) => PROFILE_NAMES.has(word.toLowerCase()))) return profile.join(', ').toLowerCase()
  return profile.length === 1 ? '1 selected item' : `${profile.length} selected items`
}

/** What an assessment keeps of one control of a framework. */
export interface TemplateItem {
  /** `GV.OC-01`, `3.4`: the framework's own number, unique in the template. */
  readonly id: string
  readonly title: string
  /** Answerable with yes, partial or no. Assessments of early releases and of files may lack it. */
  readonly question?: string
  readonly weight: number
  /** 1 (highest) to 5. */
  readonly priority: number
  /** What to do if the control is not met. */
  readonly recommendation: string
}

/** The texts that help to answer an item. */
interface Guidance {
  /** What counts as each answer. */
  readonly yes: string
  readonly partial: string
  readonly no: string
  /** Typical documents, settings or records. */
  readonly evidence: string
}

/** What discovery knows something about. */
export const DISCOVERY_TOPICS = ['inventory', 'shadow_ai', 'suppliers', 'logging', 'monitoring'] as const
export type DiscoveryTopic = (typeof DISCOVERY_TOPICS)[number]

/** The facts of discovery that an item names. */
export interface ItemDiscovery {
  readonly topic: DiscoveryTopic
  /** They show all that the item asks for, and not only a part. */
  readonly decides: boolean
}

/** A legal duty among the references of an item. */
export interface LegalDuty {
  readonly reference: string
  /** The day from which it applies, such as `2027-12-02`. */
  readonly appliesFrom: string
  /** The address of the law that sets this day. */
  readonly source: string
}

/** One control of a built-in framework. */
export interface FrameworkItem extends TemplateItem {
  /** Absent until the framework's texts are written. */
  readonly guidance?: Guidance
  /** The profiles that contain the item; absent if the framework has no profiles. */
  readonly baselines?: readonly string[]
  /** Identifiers of other standards, if the item's id is not one of a standard itself. */
  readonly references?: readonly string[]
  /** Absent if none of the references is a law. */
  readonly law?: readonly LegalDuty[]
  /** If its answer is no, the grade is D at best. */
  readonly mustPass?: true
  /** Absent if discovery shows nothing about it. */
  readonly discovery?: ItemDiscovery
}

export interface TemplateCategory {
  readonly name: string
  readonly weight: number
  readonly items: readonly FrameworkItem[]
}

export interface Template {
  /** The first hex digits of the SHA-256 of the categories. */
  readonly version: string
  readonly categories: readonly TemplateCategory[]
}

/** The items of new assessments, by framework. */
export type Templates = Readonly<Record<FrameworkId, Template>>
