import type { Json } from './openapi-responses.ts'

/**
 * For each path, an example response with data and one without. Tests check that they match the
 * schema. No example contains customer data.
 */
export const EXAMPLES: Readonly<Record<string, Readonly<Record<string, { summary: string; value: Json }>>>> = {
  '/api/v1/scores': {
    scores: {
      summary: 'Two assessed frameworks',
      value: {
        scores: [
          { framework_id: 'ai-security', overall_score: 72, grade: 'C', completed_at: '2026-11-18T14:20:05Z' },
          { framework_id: 'soc-2', overall_score: 91, grade: 'A', completed_at: '2026-10-02T08:00:41Z' },
        ],
      },
    },
    none: { summary: 'No assessment is completed', value: { scores: [] } },
  },
  '/api/v1/recommendations': {
    recommendations: {
      summary: 'A page of recommendations',
      value: {
        recommendations: [
          {
            id: '3e0f9a52-6f0b-4a8c-9d0e-5b1c2a7d4e61',
            title: 'Keep an inventory of the AI services in use.',
            priority: 1,
            status: 'in_progress',
            framework_id: 'ai-security',
            category: 'Governance',
          },
          {
            id: 'b7c41d08-2a53-4f1e-8c36-90d2e4f5a713',
            title: 'Test the restoration of backups twice a year.',
            priority: 3,
            status: 'open',
            framework_id: 'soc-2',
            category: 'Availability',
          },
        ],
      },
    },
    none: {
      summary: 'No assessment is completed, or the offset is after the end of the list',
      value: { recommendations: [] },
    },
  },
  '/api/v1/discovery': {
    scan: {
      summary: 'A scan that detected one platform',
      value: {
        scan: {
          id: '9b0d6c1f-83a4-4d5e-a2f7-1c6e8b3d5f90',
          organization_id: '5d2f8e17-49b6-4c3a-b8d1-7e0a6f4c2b35',
          status: 'completed',
          domain: 'acme.example',
          started_at: '2026-11-20T12:00:00Z',
          completed_at: '2026-11-20T12:00:01Z',
          summary: { platforms_discovered: 1, shadow_ai_count: 1, overall_risk_score: 45 },
        },
        platforms: [
          {
            id: 'e81a4c6b-0d75-4f92-9c3e-2b5d7f1a8e04',
            platform_name: 'Example Chat',
            platform_type: 'llm_chat',
            url: 'https://chat.example/',
            confidence: 0.9312,
            metadata: {
              vendor: 'Example',
              category: 'LLM Chat Assistant',
              use: 'ai',
              approved: false,
              decision: 'waiting',
              risk: { score: 55, why: 'Prompts leave the organization.' },
              matches: 1840,
              used_matches: 1840,
              methods: { dns: 1210, tls: 630 },
              roles: { web: 1500, api: 340 },
              access: [
                { kind: 'web', matches: 1500, domains: ['chat.example'] },
                { kind: 'api', matches: 340, domains: ['api.chat.example'] },
              ],
              programmatic_clients: 2,
              clients: 37,
              clients_error: 0,
              days: 12,
              first_seen: '2026-11-02T07:41:19Z',
              last_seen: '2026-11-20T11:58:03Z',
              domains: ['chat.example', 'api.chat.example'],
              domains_total: 2,
              coverage: { visible_share: 0.9912 },
            },
            created_at: '2026-11-02T08:00:00Z',
          },
        ],
      },
    },
    none: { summary: 'No scan has completed', value: { scan: null, platforms: [] } },
  },
  '/api/v1/assessments': {
    assessments: {
      summary: 'One completed assessment',
      value: {
        assessments: [
          {
            id: '0c9e7b35-d148-4a6f-8e52-f3b6a1d7c920',
            framework_id: 'ai-security',
            status: 'completed',
            overall_score: 72,
            grade: 'C',
            started_at: '2026-11-10T09:00:00Z',
            completed_at: '2026-11-18T14:20:05Z',
            categories: [
              { name: 'Governance', weight: 2, score: 68 },
              { name: 'Data', weight: 1, score: 80 },
              { name: 'Model development', weight: 1.5, score: null },
            ],
          },
        ],
      },
    },
    none: { summary: 'No assessment is completed', value: { assessments: [] } },
  },
}
