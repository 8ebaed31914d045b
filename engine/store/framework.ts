/** The specification's frameworks with their names, in its order, which is the order of scores, too. */
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

/** One check of a framework. */
export interface TemplateItem {
  /** `GV.OC`, `3.4`: as the framework numbers it, unique in the template. */
  readonly id: string
  readonly title: string
  readonly weight: number
  /** 1 to 5, 1 is the highest. */
  readonly priority: number
  /** What to do where the check fails. */
  readonly recommendation: string
}

export interface TemplateCategory {
  readonly name: string
  readonly weight: number
  readonly items: readonly TemplateItem[]
}

/** For each framework the categories that a new assessment begins with. */
export type Templates = Readonly<Record<FrameworkId, readonly TemplateCategory[]>>
