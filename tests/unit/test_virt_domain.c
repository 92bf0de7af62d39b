/* Descriptions for libvirt: values cannot add elements. */
#include "virt/virt.h"

#include "unit.h"

static void a_domain_has_what_it_was_given(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    struct domain_values v = {"qemu",      "maximum",   "holt-sb_1",  "u-1",
                              "holt in_1", "1000",      "2",          "/p/kern",
                              "/p/ird",    "quiet a=b", "/p/d.qcow2", "/p/d.log"};

    (void)state;
    domain_describe(&v, &b);
    assert_non_null(
        strstr(buf_data(&b), "<domain type='qemu'><name>holt-sb_1</name><uuid>u-1</uuid>"));
    assert_non_null(strstr(buf_data(&b), "<memory unit='b'>1000</memory><vcpu>2</vcpu>"));
    assert_non_null(strstr(buf_data(&b), "<cmdline>quiet a=b</cmdline></os>"));
    assert_non_null(strstr(buf_data(&b), "<source file='/p/d.qcow2'></source>"));
    assert_non_null(strstr(buf_data(&b), "</devices></domain>"));
}

static void values_are_escaped(void **state)
{
    AUTO(buf_done) struct buf b = {0};

    (void)state;
    volume_describe("a</name><x y='&'>", "qcow2", 7, "/b", &b);
    assert_string_equal(buf_data(&b),
                        "<volume><name>a&lt;/name>&lt;x y=&apos;&amp;&apos;></name>"
                        "<capacity unit='bytes'>7</capacity><allocation>0</allocation>"
                        "<target><format type='qcow2'></format></target>"
                        "<backingStore><path>/b</path><format type='qcow2'></format></backingStore>"
                        "</volume>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_domain_has_what_it_was_given),
        cmocka_unit_test(values_are_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
