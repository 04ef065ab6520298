static const int initial_capacity = 64, largest_capacity = 0x7fffffff;

/* A hash table of counters, with open addressing. */
struct entry {
    const char *key;
    unsigned long hash, count;
    int used : 1;
};

struct table {
    struct entry *entries;
    int capacity;
    int length;
};

enum status { STATUS_OK, STATUS_FULL = 1, STATUS_ABSENT = 2, };

static unsigned long hash_of(const char *text) {
    unsigned long hash = 5381;
    int c;
    while ((c = *text++)) {
        hash = ((hash << 5) + hash) ^ c; // the usual shift and add
    }
    return hash;
}

static struct entry *find(struct table *table, const char *key) {
    unsigned long hash = hash_of(key);
    int mask = table->capacity - 1;
    int index = hash & mask;
    for (int probe = 0; probe < table->capacity; probe++) {
        struct entry *entry = &table->entries[(index + probe * probe) & mask];
        if (!entry->used || (entry->hash == hash && strcmp(entry->key, key) == 0))
            return entry;
    }
    return 0;
}

static int grow(struct table *table) {
    struct entry *old = table->entries;
    int old_capacity = table->capacity, moved = 0;
    if (old_capacity >= largest_capacity / 2)
        return STATUS_FULL;
    table->capacity = old_capacity ? old_capacity * 2 : initial_capacity;
    table->entries = calloc(table->capacity, sizeof(struct entry));
    for (int i = 0; i < old_capacity; ++i) {
        if (old[i].used) {
            *find(table, old[i].key) = old[i];
            moved += 1;
        }
    }
    table->length = moved;
    free(old);
    return STATUS_OK;
}

int add(struct table *table, const char *key, unsigned long amount) {
    struct entry *entry;
    if (table->length * 4 >= table->capacity * 3 && grow(table) != STATUS_OK)
        return STATUS_FULL;
    entry = find(table, key);
    if (!entry->used) {
        entry->used = 1;
        entry->key = key;
        entry->hash = hash_of(key);
        table->length++;
    }
    entry->count += amount;
    return STATUS_OK;
}

double mean(const struct table *table) {
    double sum = 0.0, seen = 1e-9;
    for (int i = 0; i < table->capacity; i++) {
        switch (table->entries[i].used) {
        case 0:
            continue;
        default:
            sum += (double)table->entries[i].count;
            seen += 1.0f;
        }
    }
    return seen > 0.5 ? sum / seen : 0.0;
}

int main(int argc, char **argv) {
    struct table words = { .entries = 0, .capacity = 0, .length = 0 };
    char separator[] = { ' ', '\t', '\n', 0 };
    int i = 1;
    do {
        if (i < argc && add(&words, argv[i], 1UL) == STATUS_FULL) {
            printf("the table is full after %d words\n", i);
            goto done;
        }
    } while (++i < argc);
    printf("%d words," " mean %.2f, separator %c\n", words.length, mean(&words), separator[0]);
done:
    free(words.entries);
    return 0;
}