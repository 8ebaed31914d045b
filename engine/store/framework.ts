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

/** One control of a framework. */
export interface TemplateItem {
  /** `GV.OC`, `3.4`: the framework's own number, unique in the template. */
  readonly id: string
  readonly title: string
  readonly weight: number
  /** 1 (highest) to 5. */
  readonly priority: number
  /** What to do if the control is not met. */
  readonly recommendation: string
}

export interface TemplateCategory {
  readonly name: string
  readonly weight: number
  readonly items: readonly TemplateItem[]
}

/** The categories of a new assessment, by framework. */
export type Templates = Readonly<Record<FrameworkId, readonly TemplateCategory[]>>
