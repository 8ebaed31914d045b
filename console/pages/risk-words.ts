import type { FactKind } from '../../registry/facts.ts'
import type { RiskTerm } from '../../registry/risk-sum.ts'

const KINDS: Readonly<Record<FactKind, string>> = {
  trains_on_content: 'training on user content',
  retention_days: 'days that content is kept',
  hosting_country: 'country of hosting',
  soc2: 'SOC 2 report',
  iso27001: 'ISO 27001 certificate',
  iso42001: 'ISO 42001 certificate',
  fedramp: 'FedRAMP authorization',
  dpa: 'data processing agreement',
  enterprise_tier: 'enterprise plan',
  sso: 'single sign-on',
  tenant_restriction: 'HTTP header that allows only your accounts',
  minimum_age: 'minimum age',
}
/** The values of `trains_on_content`. */
const VALUES: Readonly<Record<string, string>> = {
  opt_in: 'only with consent',
  opt_out: 'unless the user opts out',
}

/** A term of a registry risk in words: `Training on user content: unless the user opts out`. */
export function termText({ input, value }: Pick<RiskTerm, 'input' | 'value'>): string {
  if (input === 'class') return value
  if (input === 'limit') return `Limited to ${value}`
  if (input === 'unknown') return `Unknown: ${value.split(', ').map(kindText).join(', ')}`
  const kind = kindText(input)
  const said = value.replace(/^\w+/, (word) => VALUES[word] ?? word)
  return `${kind.charAt(0).toUpperCase()}${kind.slice(1)}: ${said}`
}

function kindText(kind: string): string {
  return KINDS[kind as FactKind] ?? kind
}
