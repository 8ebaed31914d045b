import { DISCOVERY_TOPICS, type DiscoveryTopic } from '../store/assessments.ts'
import { type AnyFrameworkId, type FrameworkId, isBuiltIn } from '../store/framework.ts'
import { itemKey } from './rules.ts'
import { frameworkItems } from './templates.ts'

/*
 * The items to whose answers discovery contributes facts, by published identifiers
 * (frameworks/tables/identifiers.tsv). An item of AI Security is found by its first reference. No
 * standard names shadow AI, so these items are found by their own ids.
 */
export const ITEMS_OF_TOPIC: Readonly<
  Record<DiscoveryTopic, Partial<Readonly<Record<FrameworkId, readonly string[]>>>>
> = {
  inventory: {
    'ai-security': ['AIRMF GOVERN 1.6', 'INV-1'],
    'cis-v8': ['2.1', '15.1'],
    'nist-800-53': ['CM-8'],
    'nist-csf-2': ['ID.AM-02', 'ID.AM-04'],
    'iso-27001': ['A.5.9'],
    'pci-dss': ['12.8.1'],
  },
  shadow_ai: {
    'ai-security': ['INV-2', 'INV-3'],
    'cis-v8': ['2.3'],
    'nist-800-53': ['AC-20', 'CM-11'],
    'nist-csf-2': ['PR.PS-05', 'DE.CM-03'],
    'iso-27001': ['A.8.19'],
    'soc-2': ['CC6.8'],
  },
  suppliers: {
    'ai-security': ['AIRMF GOVERN 6.1', 'AIRMF MANAGE 3.1'],
    'cis-v8': ['15.5', '15.6'],
    'nist-800-53': ['SA-9', 'SR-6'],
    'nist-csf-2': ['GV.SC-04', 'GV.SC-07'],
    hipaa: ['164.308(b)(1)'],
    'iso-27001': ['A.5.19', 'A.5.22', 'A.5.23'],
    'soc-2': ['CC9.2'],
    'pci-dss': ['12.8.4'],
  },
  logging: {
    'ai-security': ['ISO42001 A.6.2.8'],
    'cis-v8': ['8.2', '8.6', '8.7', '8.9'],
    'nist-800-53': ['AU-2', 'AU-12'],
    'nist-csf-2': ['PR.PS-04'],
    hipaa: ['164.312(b)'],
    'iso-27001': ['A.8.15'],
    'pci-dss': ['10.2.1'],
  },
  monitoring: {
    'ai-security': ['AIRMF MANAGE 4.1'],
    'cis-v8': ['13.6'],
    'nist-800-53': ['CA-7', 'SI-4'],
    'nist-csf-2': ['DE.CM-01', 'DE.CM-06'],
    hipaa: ['164.308(a)(1)(ii)(D)'],
    'iso-27001': ['A.8.16'],
    'soc-2': ['CC7.2'],
    'pci-dss': ['10.4.1'],
  },
}

/** By framework, and the identifier in lower case. */
const TOPICS = new Map<string, DiscoveryTopic>(
  DISCOVERY_TOPICS.flatMap((topic) =>
    Object.entries(ITEMS_OF_TOPIC[topic]).flatMap(([framework, ids]) =>
      ids.map((id) => [`${framework} ${itemKey(id)}`, topic] as const),
    ),
  ),
)

/** What discovery knows about an item. undefined: nothing. */
export function topicOf(frameworkId: AnyFrameworkId, id: string): DiscoveryTopic | undefined {
  if (!isBuiltIn(frameworkId)) return undefined
  const own = TOPICS.get(`${frameworkId} ${itemKey(id)}`)
  if (own !== undefined) return own
  const [reference] = frameworkItems(frameworkId).get(itemKey(id))?.references ?? []
  return reference === undefined ? undefined : TOPICS.get(`${frameworkId} ${itemKey(reference)}`)
}
